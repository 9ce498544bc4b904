#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    nflog::fuzz_nflog(data);
});
