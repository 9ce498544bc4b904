#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::containers::fuzz_cgroup(data);
});
