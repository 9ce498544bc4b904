#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::owners::fuzz_owners(data);
});
