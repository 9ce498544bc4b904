#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::ethers::fuzz_name_files(data);
});
