#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::link_modes::fuzz_link_modes(data);
});
