//! One file from one of several servers, with retries and resumption.

use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

use indicatif::ProgressBar;
use ureq::http::{Response, StatusCode, header};

use super::error::FetchError;
use super::partial::{Origin, Partial};
use super::retry::{Backoff, parse_retry_after};
use crate::progress;

/// How requests name their sender.
const USER_AGENT: &str = concat!("spm/", env!("CARGO_PKG_VERSION"), " (+ sparse matrix kernels)");

/// An attempt that brings as much is progress: the retries are counted anew after it.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Silence of a server after which an attempt is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// A file to fetch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    /// Path below a server's base address.
    pub path: &'a str,
    /// What the progress bar calls it.
    pub label: &'a str,
    /// Largest length in bytes.
    pub max_bytes: Option<u64>,
}

/// How one attempt failed.
enum Failure {
    /// For good, on every server.
    Stop(FetchError),
    /// For good on this server.
    Next { reason: String, reached: bool },
    /// The name of the server cannot be looked up: without a network this takes no time, and waiting
    /// rarely brings one.
    Unknown { reason: String },
    /// Perhaps not for good.
    Again { reason: String, reached: bool, retry_after: Option<Duration>, received: u64 },
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::Stop(error)
    }
}

impl Failure {
    fn next(reason: impl Into<String>) -> Self {
        Self::Next { reason: reason.into(), reached: true }
    }

    fn again(reason: impl Into<String>, received: u64) -> Self {
        Self::Again { reason: reason.into(), reached: true, retry_after: None, received }
    }
}

/// Fetches files, one connection at a time.
pub(super) struct Fetcher {
    agent: ureq::Agent,
    bases: Vec<String>,
    backoff: Backoff,
    sleep: Box<dyn FnMut(Duration)>,
}

impl Fetcher {
    /// Asks the servers `bases` in this order; `sleep` waits between attempts.
    pub(super) fn new(
        bases: Vec<String>,
        backoff: Backoff,
        sleep: Box<dyn FnMut(Duration)>,
    ) -> Self {
        let config = ureq::Agent::config_builder()
            .user_agent(USER_AGENT)
            // The collection redirects https to a plain http file host.
            .https_only(false)
            .max_redirects(10)
            // The archive as it is stored: any other encoding would change its length and hash.
            .accept_encoding("identity")
            .http_status_as_error(false)
            .max_idle_connections(1)
            .timeout_connect(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .build();
        Self { agent: config.into(), bases, backoff, sleep }
    }

    /// Completes `partial` with the bytes of the requested file.
    ///
    /// # Errors
    /// When no server gives the file; what has arrived stays for the next call.
    pub(super) fn fetch(
        &mut self,
        request: &Request<'_>,
        partial: &Partial,
    ) -> Result<(), FetchError> {
        if partial.is_complete() {
            return Ok(());
        }
        let bar = progress::over_bytes(request.label);
        let result = self.ask_servers(request, partial, &bar);
        bar.finish_and_clear();
        result
    }

    fn ask_servers(
        &mut self,
        request: &Request<'_>,
        partial: &Partial,
        bar: &ProgressBar,
    ) -> Result<(), FetchError> {
        let mut reasons = Vec::new();
        let mut any_reached = false;
        for base in self.bases.clone() {
            let url = format!("{base}/{}", request.path);
            match self.ask_server(&url, request, partial, bar) {
                Ok(()) => return Ok(()),
                Err(Failure::Stop(error)) => return Err(error),
                Err(Failure::Unknown { reason }) => reasons.push(format!("{url}: {reason}")),
                Err(Failure::Next { reason, reached } | Failure::Again { reason, reached, .. }) => {
                    any_reached |= reached;
                    reasons.push(format!("{url}: {reason}"));
                }
            }
        }
        let reasons = reasons.join("; ");
        Err(if any_reached {
            FetchError::Refused(reasons)
        } else {
            FetchError::Unreachable(reasons)
        })
    }

    fn ask_server(
        &mut self,
        url: &str,
        request: &Request<'_>,
        partial: &Partial,
        bar: &ProgressBar,
    ) -> Result<(), Failure> {
        let mut retry = 0;
        loop {
            let failure = match self.attempt(url, request, partial, bar) {
                Err(failure) => failure,
                Ok(()) => return Ok(()),
            };
            let (reason, reached, retry_after, received) = match failure {
                // A network that comes up in this moment is given one chance.
                Failure::Unknown { reason } if retry == 0 && self.backoff.retries > 0 => {
                    (reason, false, None, 0)
                }
                Failure::Again { reason, reached, retry_after, received } => {
                    (reason, reached, retry_after, received)
                }
                _ => return Err(failure),
            };
            if received >= PROGRESS_BYTES {
                retry = 0;
            }
            let Some(wait) = self.backoff.wait(retry, retry_after) else {
                let reason = match retry_after {
                    Some(asked) if asked > self.backoff.max_wait => {
                        format!("{reason}, and it asks to wait {} s", asked.as_secs())
                    }
                    _ if retry == 0 => reason,
                    _ => format!("{reason} ({} attempts)", retry + 1),
                };
                return Err(Failure::Again { reason, reached, retry_after, received });
            };
            let message = format!("{reason}; again in {} s", wait.as_secs_f32());
            if bar.is_hidden() {
                // The output is a file or a pipe: without a line nothing would be seen for minutes.
                eprintln!("{}: {url}: {message}", request.label);
            }
            bar.set_message(message);
            (self.sleep)(wait);
            bar.set_message("");
            retry += 1;
        }
    }

    fn attempt(
        &self,
        url: &str,
        request: &Request<'_>,
        partial: &Partial,
        bar: &ProgressBar,
    ) -> Result<(), Failure> {
        let resumed = resumable(partial, url);
        let mut get = self.agent.get(url);
        if let Some(origin) = &resumed {
            get = get.header(header::RANGE, format!("bytes={}-", partial.len()));
            if let Some(validator) = origin.validator() {
                get = get.header(header::IF_RANGE, validator);
            }
        }
        let response = get.call().map_err(request_failure)?;
        let status = response.status();
        let (file, origin) = match (status, resumed) {
            (StatusCode::OK, _) => {
                let origin = Origin {
                    url: url.to_owned(),
                    etag: text(&response, header::ETAG).filter(|etag| etag.starts_with('"')),
                    last_modified: text(&response, header::LAST_MODIFIED),
                    length: response.body().content_length(),
                };
                check_size(origin.length, request)?;
                (partial.start(&origin)?, origin)
            }
            (StatusCode::PARTIAL_CONTENT, Some(origin)) => {
                let range = text(&response, header::CONTENT_RANGE);
                let range = range.as_deref().and_then(parse_content_range);
                let fits = range.is_some_and(|(start, total)| {
                    start == partial.len() && (origin.length.is_none() || total == origin.length)
                });
                if !fits {
                    partial.discard()?;
                    return Err(Failure::again("the file changed between two requests", 0));
                }
                check_size(origin.length, request)?;
                (partial.append()?, origin)
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
                partial.discard()?;
                return Err(Failure::again("the file changed between two requests", 0));
            }
            _ => return Err(status_failure(&response)),
        };
        let body = response.into_body().into_reader();
        receive(body, file, origin, request, partial, bar)
    }
}

/// The origin of what is already there, when the server can be asked for the rest.
fn resumable(partial: &Partial, url: &str) -> Option<Origin> {
    let have = partial.len();
    partial.origin().filter(|origin| {
        have > 0
            && origin.length.is_none_or(|length| have < length)
            // Without a validator only the same address with the same length is the same file.
            && (origin.validator().is_some() || (origin.url == url && origin.length.is_some()))
    })
}

fn receive(
    mut body: impl Read,
    mut file: impl Write,
    origin: Origin,
    request: &Request<'_>,
    partial: &Partial,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let before = partial.len();
    if let Some(length) = origin.length {
        bar.set_length(length);
    }
    bar.set_position(before);
    bar.reset_eta();
    let mut have = before;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let reason = match origin.length {
                    Some(length) => {
                        format!("the connection broke after {have} of {length} bytes: {error}")
                    }
                    None => format!("the connection broke after {have} bytes: {error}"),
                };
                return Err(Failure::again(reason, have - before));
            }
        };
        file.write_all(&buffer[..count]).map_err(FetchError::local(partial.path()))?;
        have += count as u64;
        bar.set_position(have);
        if let Err(error) = check_size(Some(have), request) {
            partial.discard()?;
            return Err(error.into());
        }
    }
    match origin.length {
        Some(length) if length != have => {
            partial.discard()?;
            Err(Failure::again(format!("it sent {have} bytes for {length}"), 0))
        }
        Some(_) => Ok(()),
        None => Ok(partial.note(&Origin { length: Some(have), ..origin })?),
    }
}

fn check_size(bytes: Option<u64>, request: &Request<'_>) -> Result<(), FetchError> {
    match (bytes, request.max_bytes) {
        (Some(bytes), Some(limit)) if bytes > limit => Err(FetchError::TooLarge { bytes, limit }),
        _ => Ok(()),
    }
}

fn request_failure(error: ureq::Error) -> Failure {
    let reached = |reached, reason: String, again| {
        if again {
            Failure::Again { reason, reached, retry_after: None, received: 0 }
        } else {
            Failure::Next { reason, reached }
        }
    };
    match error {
        ureq::Error::TooManyRedirects => Failure::next("its redirects go round in a circle"),
        ureq::Error::HostNotFound => Failure::Unknown { reason: "there is no such host".into() },
        ureq::Error::ConnectionFailed | ureq::Error::Timeout(_) => {
            reached(false, error.to_string(), true)
        }
        // What the standard library says when the system cannot resolve a name.
        ureq::Error::Io(error) if error.to_string().starts_with("failed to lookup address") => {
            Failure::Unknown { reason: error.to_string() }
        }
        ureq::Error::Io(error) => {
            // Everything else comes before there is a connection: name look-up, routing, refusal.
            let connected = matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            );
            reached(connected, error.to_string(), true)
        }
        ureq::Error::Protocol(_) => reached(true, error.to_string(), true),
        _ => Failure::next(error.to_string()),
    }
}

fn status_failure<B>(response: &Response<B>) -> Failure {
    let status = response.status();
    let reason = match status.canonical_reason() {
        Some(words) => format!("{} {words}", status.as_u16()),
        None => status.as_u16().to_string(),
    };
    let passing = status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    if !passing {
        return Failure::next(reason);
    }
    let retry_after = text(response, header::RETRY_AFTER)
        .and_then(|value| parse_retry_after(&value, SystemTime::now()));
    Failure::Again { reason, reached: true, retry_after, received: 0 }
}

fn text<B>(response: &Response<B>, name: header::HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// `bytes START-END/TOTAL` as (START, TOTAL).
fn parse_content_range(value: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-')?.0.trim().parse().ok()?;
    match total.trim() {
        "*" => Some((start, None)),
        total => Some((start, Some(total.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        assert_eq!(parse_content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_content_range("bytes 5-9/*"), Some((5, None)));
        assert_eq!(parse_content_range("bytes */10"), None);
        assert_eq!(parse_content_range("lines 5-9/10"), None);
        assert_eq!(parse_content_range("bytes 5-9/ten"), None);
    }

    struct FullDisk;

    impl Write for FullDisk {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_stops_at_once() {
        let dest = tempfile::tempdir().unwrap();
        let partial = Partial::new(&dest.path().join("a.tar.gz"));
        let origin =
            Origin { url: String::new(), etag: None, last_modified: None, length: Some(3) };
        let request = Request { path: "a.tar.gz", label: "a", max_bytes: None };
        let bar = ProgressBar::hidden();
        match receive(&b"abc"[..], FullDisk, origin, &request, &partial, &bar) {
            Err(Failure::Stop(error @ FetchError::Local { .. })) => {
                let text = error.to_string();
                assert!(text.starts_with("cannot write ") && text.contains("a.tar.gz.part"));
            }
            _ => panic!("a full disk is neither success nor the server's fault"),
        }
        assert!(!partial.is_complete());
    }
}
