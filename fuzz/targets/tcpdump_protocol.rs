#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    sinks::face::tcpdump::fuzz_tcpdump_protocol(data);
});
