#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::group_rules::fuzz_group_rules(data);
});
