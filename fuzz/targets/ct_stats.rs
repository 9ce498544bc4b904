#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    conntrack::stats::fuzz_stats(data);
});
