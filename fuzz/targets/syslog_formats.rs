#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    sinks::syslog::fuzz_syslog_formats(data);
});
