#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::processes::fuzz_processes(data);
});
