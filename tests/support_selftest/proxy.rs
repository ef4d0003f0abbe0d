use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::proxy::{Mode, Proxy};
use crate::support::wait::{PATIENCE, eventually};

const SHORT: Duration = Duration::from_millis(200);

/// A server that answers each piece with the same piece, and how much it has got in all.
fn echo() -> (std::net::SocketAddr, std::sync::Arc<std::sync::Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let got = std::sync::Arc::<std::sync::Mutex<Vec<u8>>>::default();
    let heard = std::sync::Arc::clone(&got);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, heard) = (stream.unwrap(), std::sync::Arc::clone(&heard));
            thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    heard.lock().unwrap().extend(&buffer[..read]);
                    if stream.write_all(&buffer[..read]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, got)
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(text)?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

fn times_out(stream: &mut TcpStream, text: &[u8]) -> bool {
    stream.set_read_timeout(Some(SHORT)).unwrap();
    let said = ask(stream, text);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    matches!(said.map_err(|e| e.kind()), Err(ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn a_sound_proxy_forwards_both_ways_and_passes_the_end_on() {
    let (server, _) = echo();
    let proxy = Proxy::to(server);
    let mut stream = connect(&proxy);
    assert_eq!(ask(&mut stream, b"hello").unwrap(), b"hello");
    assert_eq!(proxy.connections(), 1);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    eventually("the connection is counted off", PATIENCE, || proxy.connections() == 0);
}

#[test]
fn a_delay_counts_both_ways() {
    let (server, _) = echo();
    let proxy = Proxy::to(server);
    proxy.set(Mode::Delay(Duration::from_millis(50)));
    let asked = Instant::now();
    assert_eq!(ask(&mut connect(&proxy), b"x").unwrap(), b"x");
    assert!(asked.elapsed() >= Duration::from_millis(100), "{:?}", asked.elapsed());
}

#[test]
fn a_stall_lets_nothing_through_until_it_ends() {
    let (server, got) = echo();
    let proxy = Proxy::to(server);
    let mut stream = connect(&proxy);
    proxy.set(Mode::Stall);
    assert!(times_out(&mut stream, b"x"));
    assert!(got.lock().unwrap().is_empty());
    proxy.set(Mode::Ok);
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1, "the late answer comes");
}

#[test]
fn a_stall_downwards_loses_the_answer_but_not_the_request() {
    let (server, got) = echo();
    let proxy = Proxy::to(server);
    proxy.set(Mode::StallDown);
    assert!(times_out(&mut connect(&proxy), b"commit"));
    assert_eq!(*got.lock().unwrap(), b"commit");
}

#[test]
fn a_reset_strikes_old_connections_and_new_ones() {
    let (server, _) = echo();
    let proxy = Proxy::to(server);
    let mut old = connect(&proxy);
    ask(&mut old, b"x").unwrap();
    proxy.set(Mode::Reset);
    assert_eq!(old.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(ask(&mut connect(&proxy), b"x").is_err());
    proxy.set(Mode::Ok);
    ask(&mut connect(&proxy), b"x").unwrap();
}

#[test]
fn a_cut_forwards_exactly_so_many_bytes_more() {
    let (server, got) = echo();
    let proxy = Proxy::to(server);
    let mut stream = connect(&proxy);
    ask(&mut stream, b"before").unwrap();
    proxy.set(Mode::CutAfter(3));
    assert!(ask(&mut stream, b"abcdef").is_err());
    eventually("the server has got them", PATIENCE, || *got.lock().unwrap() == b"beforeabc");
    assert_eq!(proxy.mode(), Mode::Reset);
}

#[test]
fn a_url_is_led_through_the_proxy_with_its_query() {
    let (server, _) = echo();
    let proxy = Proxy::to(server);
    let url = proxy.url("postgres://postgres@127.0.0.1:5432/db?sslmode=disable");
    assert_eq!(url, format!("postgres://postgres@{}/db?sslmode=disable", proxy.address()));
}
