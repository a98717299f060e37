//! The terminal while `top` has it: another screen without a cursor, keys as they are pressed; as it was when this is dropped, or when
//! the program falls over.

use std::io::{self, Stdout, Write, stdout};
use std::sync::Once;

use anstream::{AutoStream, ColorChoice};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::mpsc;

use super::state::Key;
use super::theme::Theme;

/// Keys that may wait to be looked at.
const KEYS_MAX: usize = 100;

/// The terminal.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// What comes from it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    Key(Key),
    /// It has another size.
    Resized,
}

impl Screen {
    /// Takes it.
    ///
    /// # Errors
    /// When it cannot be taken: there is none, or it is gone.
    pub(crate) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                before(panic);
            }));
        });
        let entered = take();
        if entered.is_err() {
            leave();
        }
        entered?;
        Ok(Self { terminal: terminal()? })
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    /// Shows what is drawn; only what has changed is written.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame.buffer_mut())).map(drop)
    }

    /// Nothing on it is as it was left.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        // `Terminal::clear` asks where the cursor is, and the thread that reads keys would get the answer.
        self.terminal = terminal()?;
        Ok(())
    }

    /// Leaves it to the shell, and stops until the shell wants this back.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        leave();
        kill_process(getpid(), Signal::TSTP)?;
        take()?;
        self.forget()
    }

    /// Keys and sizes as they come, until there is no terminal any more.
    pub(crate) fn inputs() -> io::Result<mpsc::Receiver<Input>> {
        let (send, inputs) = mpsc::channel(KEYS_MAX);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while let Ok(event) = event::read() {
                let input = match event {
                    Event::Key(key) => key_of(key).map(Input::Key),
                    Event::Resize(..) => Some(Input::Resized),
                    _ => None,
                };
                if input.is_some_and(|input| send.blocking_send(input).is_err()) {
                    return;
                }
            }
        })?;
        Ok(inputs)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// As this terminal and its owner want it.
pub(crate) fn theme() -> Theme {
    Theme { has_colours: AutoStream::choice(&stdout()) != ColorChoice::Never }
}

fn terminal() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    Terminal::new(CrosstermBackend::new(stdout()))
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, cursor::Hide)
}

/// A terminal that is gone needs no order.
fn leave() {
    let mut stdout = stdout();
    let _ = execute!(stdout, LeaveAlternateScreen, cursor::Show);
    let _ = stdout.flush();
    let _ = disable_raw_mode();
}

fn key_of(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Key::Interrupt),
            KeyCode::Char('z') => Some(Key::Suspend),
            KeyCode::Char('l') => Some(Key::Redraw),
            KeyCode::Char('h') => Some(Key::Backspace),
            _ => None,
        };
    }
    match key.code {
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::PageUp => Some(Key::PageUp),
        KeyCode::PageDown => Some(Key::PageDown),
        KeyCode::Home => Some(Key::Home),
        KeyCode::End => Some(Key::End),
        KeyCode::Enter | KeyCode::Right => Some(Key::Enter),
        KeyCode::Esc | KeyCode::Left => Some(Key::Esc),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Char(c) => Some(Key::Char(c)),
        _ => None,
    }
}
