#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    export::fuzz_kafka_answers(data);
});
