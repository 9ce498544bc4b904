#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::links::fuzz_links(data);
});
