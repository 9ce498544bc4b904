#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    netlink::fuzz_dump(data, 4096);
});
