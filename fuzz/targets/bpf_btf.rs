#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    bpf::fuzz_btf(data);
});
