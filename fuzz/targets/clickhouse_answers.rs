#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    export::fuzz_clickhouse_answers(data);
});
