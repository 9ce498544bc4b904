#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    export::fuzz_otlp_answers(data);
});
