#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    counters::fuzz_counters(data);
});
