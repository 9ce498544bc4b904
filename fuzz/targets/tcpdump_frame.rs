#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    faces::tcpdump::output::fuzz_tcpdump_frame(data);
});
