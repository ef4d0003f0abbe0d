use std::fs::{File, create_dir_all};
use std::net::TcpListener;

use crate::support::scratch::base;

/// Below the kernel's range for outgoing connections, so that none of those takes the port while
/// its server is stopped.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that no other test process takes as long as this lives, also while nobody listens on it.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Holds the lock; the kernel lets go of it with the process.
    _reservation: File,
}

impl Port {
    /// Finds one on which nobody listens now.
    pub fn reserve() -> Self {
        let folder = base().join("ports");
        create_dir_all(&folder).expect("the folder is our own");
        for _ in 0..1000 {
            let number = fastrand::u16(RANGE);
            let file = File::create(folder.join(number.to_string())).expect("the folder is our own");
            if file.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Self { number, _reservation: file };
            }
        }
        panic!("no port of 127.0.0.1 is free in {RANGE:?}");
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}
