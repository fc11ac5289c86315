//! Progress bars on stderr, shown on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over bytes with rate and time left.
pub(super) fn bar(label: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix} {bar:28} {bytes}/{total_bytes} {bytes_per_sec} {eta} left {wide_msg}",
    )
    .expect("the template is fixed");
    let bar = ProgressBar::no_length().with_style(style).with_prefix(label.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
