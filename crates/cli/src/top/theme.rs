//! Colours, where the terminal shows them, and signs that do without.

use ratatui::style::{Color, Modifier, Style};

use crate::gauges::{HEATS, Heat};

/// From the most urgent to the least, each lighter than the one before: they can be told apart without colours.
pub(crate) const SHADES: [char; HEATS] = ['█', '▓', '▒', '░', '·'];
/// The same order; of the sixteen colours that every terminal lets its owner choose.
const COLOURS: [Color; HEATS] = [Color::Red, Color::Yellow, Color::Green, Color::Cyan, Color::Blue];

/// How things look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    /// Whether there are colours.
    pub(crate) has_colours: bool,
}

impl Theme {
    /// Of a lane.
    pub(crate) fn heat(self, heat: Heat) -> Style {
        self.step(heat.step())
    }

    /// Of a step, 0 the most urgent.
    pub(crate) fn step(self, step: usize) -> Style {
        self.colour(COLOURS[step])
    }

    /// Something is wrong.
    pub(crate) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Something may be wrong.
    pub(crate) fn warn(self) -> Style {
        self.colour(Color::Yellow)
    }

    /// All is well.
    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// What one looks at only when one looks for it.
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Headings.
    pub(crate) fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The chosen row, over what it has already.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn colour(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }
}
