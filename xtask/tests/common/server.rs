//! A small HTTP server on 127.0.0.1 that answers as a test says, and archives to serve.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a client asked.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    /// First byte of a Range header.
    pub(crate) fn range_start(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What the server answers.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    length: usize,
    piece: usize,
    pause: Duration,
}

impl Response {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let (length, piece) = (body.len(), body.len().max(1));
        Self { status, headers: Vec::new(), body, length, piece, pause: Duration::ZERO }
    }

    pub(crate) fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// Promises the whole body, closes the connection after `bytes` bytes of it.
    pub(crate) fn cut_after(mut self, bytes: usize) -> Self {
        self.body.truncate(bytes);
        self
    }

    /// Sends the body in pieces with a pause between them.
    pub(crate) fn slowly(mut self, piece: usize, pause: Duration) -> Self {
        (self.piece, self.pause) = (piece, pause);
        self
    }

    /// The file as a server with Range and ETag gives it.
    pub(crate) fn file(request: &Request, contents: &[u8], etag: &str) -> Self {
        let unchanged = request.header("if-range").is_none_or(|asked| asked == etag);
        let response = match request.range_start() {
            Some(start) if unchanged && start >= contents.len() => Self::new(416, ""),
            Some(start) if unchanged => {
                let range = format!("bytes {start}-{}/{}", contents.len() - 1, contents.len());
                Self::new(206, &contents[start..]).header("Content-Range", range)
            }
            _ => Self::new(200, contents),
        };
        response.header("ETag", etag)
    }

    fn send(&self, mut stream: TcpStream) -> std::io::Result<()> {
        write!(stream, "HTTP/1.1 {} X\r\nConnection: close\r\n", self.status)?;
        write!(stream, "Content-Length: {}\r\n", self.length)?;
        for (name, value) in &self.headers {
            write!(stream, "{name}: {value}\r\n")?;
        }
        stream.write_all(b"\r\n")?;
        for piece in self.body.chunks(self.piece) {
            stream.write_all(piece)?;
            thread::sleep(self.pause);
        }
        Ok(())
    }
}

/// A running server; it ends with the test's process.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) base: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers request number `n` (from 0) with `answer(n, request)`, one at a time.
    pub(crate) fn start(
        mut answer: impl FnMut(usize, &Request) -> Response + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let Some(request) = read_request(&stream) else { continue };
                let number = {
                    let mut requests = requests.lock().unwrap();
                    requests.push(request.clone());
                    requests.len() - 1
                };
                // A client that hangs up early is part of some tests.
                let _ = answer(number, &request).send(stream);
            }
        });
        Self { base, seen }
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let headers = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect();
    Some(Request { path, headers })
}

/// NAME.tar.gz with these members.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut builder = tar::Builder::new(gzip);
    for (path, contents) in members {
        let mut header = tar::Header::new_gnu();
        // `set_path` refuses what some tests need.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *contents).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// A Matrix Market file of these sizes; the values do not compress well.
pub(crate) fn matrix(rows: usize, cols: usize, entries: usize) -> Vec<u8> {
    let mut text = "%%MatrixMarket matrix coordinate real general\n% made for a test\n".to_owned();
    text.push_str(&format!("{rows} {cols} {entries}\n"));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for i in 0..entries {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{} {} {state}\n", i % rows + 1, i / rows % cols + 1));
    }
    text.into_bytes()
}
