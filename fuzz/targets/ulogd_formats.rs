#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(row) = nflog::decode_record(data, 0, &mut 0) {
        sinks::ulogd::fuzz_ulogd_formats(&row);
    }
});
