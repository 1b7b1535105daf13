//! A relay between the manager and a server whose connections can be left half open: they stay,
//! and nothing passes any more, not even their end.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    target: SocketAddr,
    /// Connections that are older than this number are dead for good.
    alive_from: AtomicU64,
    /// Whether new connections are taken and nothing is done with them.
    swallows: AtomicBool,
    ended: AtomicBool,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Relay {
    pub(crate) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target,
            alive_from: AtomicU64::new(0),
            swallows: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            sockets: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for number in 0.. {
                let Ok((socket, _)) = listener.accept() else { return };
                if accepting.ended.load(Ordering::SeqCst) {
                    return;
                }
                accepting.take(socket, number);
            }
        });
        Self { address, shared }
    }

    /// Nothing passes from now on.
    pub(crate) fn cut(&self) {
        self.shared.swallows.store(true, Ordering::SeqCst);
        self.shared.alive_from.store(u64::MAX, Ordering::SeqCst);
    }

    /// New connections work again; those that were there stay dead.
    pub(crate) fn mend(&self) {
        self.shared.swallows.store(false, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        for socket in self.shared.sockets.lock().unwrap().drain(..) {
            let _already_closed = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn take(self: &Arc<Self>, app: TcpStream, number: u64) {
        let keep = |socket: &TcpStream| {
            self.sockets.lock().unwrap().push(socket.try_clone().unwrap());
        };
        keep(&app);
        if self.swallows.load(Ordering::SeqCst) {
            return;
        }
        // The first connection after a cut is the first that lives again.
        let _ = self.alive_from.fetch_min(number, Ordering::SeqCst);
        let Ok(server) = TcpStream::connect(self.target) else { return };
        keep(&server);
        for (from, to) in [(&app, &server), (&server, &app)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let shared = Arc::clone(self);
            std::thread::spawn(move || shared.pump(number, from, to));
        }
    }

    fn pump(&self, number: u64, mut from: TcpStream, mut to: TcpStream) {
        let _best_effort = to.set_nodelay(true);
        let mut buffer = [0; 16 << 10];
        loop {
            let count = from.read(&mut buffer).unwrap_or_default();
            let dead = number < self.alive_from.load(Ordering::SeqCst);
            match (count, dead) {
                (0, true) => return,
                (0, false) => {
                    let _already_closed = to.shutdown(Shutdown::Both);
                    return;
                }
                (_, true) => {}
                (count, false) => {
                    if to.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            }
        }
    }
}
