#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    pcapfilter::fuzz_pcap_filter(data);
});
