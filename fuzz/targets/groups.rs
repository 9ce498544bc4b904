#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::groups::fuzz_groups(data);
});
