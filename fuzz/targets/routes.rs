#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::routes::fuzz_routes(data);
});
