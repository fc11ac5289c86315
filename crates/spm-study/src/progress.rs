//! Progress bars on stderr; nothing is drawn where that is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `length` things, such as `cases`.
pub(crate) fn over(length: u64, things: &str) -> ProgressBar {
    let template = format!("{{bar:40}} {{pos}}/{{len}} {things}, {{eta}} left  {{msg}}");
    ProgressBar::new(length).with_style(style(&template))
}

/// A bar over bytes with rate and time left; how many there are is set later.
pub(crate) fn over_bytes(label: &str) -> ProgressBar {
    let template = "{prefix} {bar:28} {bytes}/{total_bytes} {bytes_per_sec} {eta} left {wide_msg}";
    let bar = ProgressBar::no_length().with_style(style(template)).with_prefix(label.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are those above")
}
