#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    packet::fuzz_frame(data);
});
