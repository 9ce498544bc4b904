#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    packet::dns::fuzz_dns(data);
});
