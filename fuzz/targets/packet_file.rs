#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    capture::fuzz_packet_file(data);
});
