#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    sockets::fuzz_walk_block(data);
});
