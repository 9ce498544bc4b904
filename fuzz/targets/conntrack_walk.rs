#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    conntrack::fuzz_conntrack_walk(data);
});
