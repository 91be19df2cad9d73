//! Tests which environment variables lead to which settings.

use super::*;

fn read(variables: &[(&'static str, &str)]) -> Result<OtlpSettings, Error> {
    OtlpSettings::read(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn exported(variables: &[(&'static str, &str)]) -> (Option<String>, Option<String>) {
    let settings = read(variables).expect("settings");
    (settings.traces, settings.metrics)
}

#[test]
fn the_generic_endpoint_turns_both_signals_on_and_specific_ones_win() {
    let collector = Some("http://collector:4317".to_owned());
    let own = Some("https://traces:4317".to_owned());
    let generic = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
    let specific = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces:4317");
    assert_eq!(exported(&[]), (None, None));
    assert_eq!(exported(&[generic]), (collector.clone(), collector.clone()));
    assert_eq!(exported(&[generic, specific]), (own.clone(), collector.clone()));
    assert_eq!(exported(&[specific]), (own, None));
    assert_eq!(exported(&[generic, ("OTEL_METRICS_EXPORTER", "none")]), (collector.clone(), None));
    assert_eq!(exported(&[generic, ("OTEL_SDK_DISABLED", "TRUE")]), (None, None));
    assert_eq!(exported(&[generic, ("OTEL_SDK_DISABLED", "")]), (collector.clone(), collector));
}

#[test]
fn a_bad_value_is_one_error_that_names_its_variable() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
    let cases: &[(&str, &[(&'static str, &str)])] = &[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "::")]),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]),
        ("OTEL_TRACES_EXPORTER", &[endpoint, ("OTEL_TRACES_EXPORTER", "zipkin")]),
        ("OTEL_SDK_DISABLED", &[endpoint, ("OTEL_SDK_DISABLED", "yes")]),
        ("OTEL_TRACES_SAMPLER", &[endpoint, ("OTEL_TRACES_SAMPLER", "sometimes")]),
        ("OTEL_TRACES_SAMPLER_ARG", &[endpoint, ("OTEL_TRACES_SAMPLER", "traceidratio")]),
        ("OTEL_RESOURCE_ATTRIBUTES", &[endpoint, ("OTEL_RESOURCE_ATTRIBUTES", "a=b,c")]),
    ];
    for (name, variables) in cases {
        let error = read(variables).expect_err(name);
        assert!(matches!(&error, Error::Variable { variable, .. } if variable == name), "{name}: {error}");
        assert!(error.to_string().starts_with(&format!("{name}=")), "{error}");
    }
    // Without an endpoint nothing is exported, and the rest is nobody's business.
    assert_eq!(read(&[("OTEL_TRACES_SAMPLER", "sometimes")]), Ok(OtlpSettings::default()));
}

#[test]
fn levels_are_read_as_people_write_them_and_typos_are_refused() {
    for (text, directives) in
        [("INFO", "info"), ("warning", "warn"), ("error", "error"), ("a=debug", "a=debug")]
    {
        assert_eq!(text.parse::<LogLevel>().expect(text).directives(), directives);
    }
    assert!("debug".parse::<LogLevel>().expect("a level").directives().starts_with("debug,"));
    for text in ["inof", "", "info,a=loud"] {
        let error = text.parse::<LogLevel>().expect_err(text).to_string();
        assert!(error.starts_with("LOG_LEVEL="), "{error}");
    }
    assert_eq!("TEXT".parse::<LogFormat>(), Ok(LogFormat::Text));
    assert!("xml".parse::<LogFormat>().expect_err("a format").to_string().starts_with("LOG_FORMAT="));
}
