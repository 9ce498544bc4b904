#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    profile::fuzz_samples(data);
});
