#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    export::fuzz_spool_position(data);
});
