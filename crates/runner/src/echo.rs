//! `pod-echo --port N`: a server that answers every request with what it was asked, for pods of images that do the same.
//!
//! It stands for such images in examples and tests: it reads a request's head, answers 200, and closes.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;

/// The command by which the runner's own executable becomes this server.
pub const ECHO_COMMAND: &str = "pod-echo";

const USUAL_PORT: u16 = 8080;
/// What is read of a request at most.
const LONGEST_HEAD: usize = 64;

/// Serves until it is ended.
pub fn serve(arguments: &[String]) -> ExitCode {
    let port = port_of(arguments);
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("listening on port {port}: {error}: name another one with --port");
            return ExitCode::FAILURE;
        }
    };
    println!("listening on port {port}");
    let text = text_of(arguments);
    for stream in listener.incoming().flatten() {
        let text = text.clone();
        // A client that goes away is its own affair.
        std::thread::spawn(move || drop(answer(stream, text.as_deref())));
    }
    ExitCode::SUCCESS
}

/// `--port N`, `--port=N`, `-listen=:N`.
fn port_of(arguments: &[String]) -> u16 {
    let written = value_of(arguments, "port").or_else(|| value_of(arguments, "listen"));
    written.and_then(|value| value.rsplit(':').next()?.parse().ok()).unwrap_or(USUAL_PORT)
}

/// `--text=TEXT`: what to answer in the place of the request.
fn text_of(arguments: &[String]) -> Option<String> {
    value_of(arguments, "text").map(str::to_owned)
}

fn value_of<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(after) = argument.trim_start_matches('-').strip_prefix(name) else { continue };
        match after.strip_prefix('=') {
            Some(value) => return Some(value),
            None if after.is_empty() => return rest.next().map(String::as_str),
            None => {}
        }
    }
    None
}

fn answer(stream: TcpStream, text: Option<&str>) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut head = String::new();
    for line in lines.by_ref().take(LONGEST_HEAD) {
        let line = line?;
        if line.is_empty() {
            break;
        }
        head.push_str(&line);
        head.push('\n');
    }
    let body = text.unwrap_or(&head);
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(arguments: &[&str]) -> u16 {
        port_of(&arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_port_is_named_as_such_servers_have_it_named() {
        assert_eq!(port(&["--port", "81"]), 81);
        assert_eq!(port(&["-port=82"]), 82);
        assert_eq!(port(&["-text=x", "-listen=:83"]), 83);
        assert_eq!(port(&["--portal=1"]), USUAL_PORT);
    }
}
