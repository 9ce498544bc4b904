#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    drops::fuzz_net_dm(data);
});
