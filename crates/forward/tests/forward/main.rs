//! What an endpoint sends next: claims told as stories, and anything that can happen to a line.

mod anything;
mod claims;
mod world;
