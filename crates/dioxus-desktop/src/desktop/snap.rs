//! Snapping: the half or quarter of the screen at the pointer, its preview, and moving a window there.

use shared_types::WindowId;
use shared_types::payload::window::{Rect, WindowMode};

use super::drag;
use crate::dom;
use crate::state::{AppState, BAR};

/// A part of the screen that a window can fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    Full,
    Left,
    Right,
    TopLeft,
    TopRight,
    BottomLeft,
    BottomRight,
}

const GAP: i32 = 8;
const NEAR: i32 = 18;

impl Zone {
    fn rect(self, (width, height): (i32, i32)) -> Rect {
        let height = height - BAR;
        let (half_w, half_h) = ((width - 3 * GAP) / 2, (height - 3 * GAP) / 2);
        let (right, low) = (2 * GAP + half_w, 2 * GAP + half_h);
        let tall = height - 2 * GAP;
        let (x, y, w, h) = match self {
            Self::Full => (0, 0, width, height),
            Self::Left => (GAP, GAP, half_w, tall),
            Self::Right => (right, GAP, half_w, tall),
            Self::TopLeft => (GAP, GAP, half_w, half_h),
            Self::TopRight => (right, GAP, half_w, half_h),
            Self::BottomLeft => (GAP, low, half_w, half_h),
            Self::BottomRight => (right, low, half_w, half_h),
        };
        Rect { x, y, width: w.max(1) as u32, height: h.max(1) as u32 }
    }
}

/// The part of the screen that a window dropped here would fill.
pub(crate) fn zone_at((x, y): (i32, i32), (width, height): (i32, i32)) -> Option<Zone> {
    let corner = height / 5;
    let bottom = height - BAR;
    if x <= NEAR {
        return Some(match y {
            y if y < corner => Zone::TopLeft,
            y if y > bottom - corner => Zone::BottomLeft,
            _ => Zone::Left,
        });
    }
    if x >= width - NEAR {
        return Some(match y {
            y if y < corner => Zone::TopRight,
            y if y > bottom - corner => Zone::BottomRight,
            _ => Zone::Right,
        });
    }
    (y <= 4).then_some(Zone::Full)
}

/// Shows where the window would go.
pub(crate) fn preview(zone: Option<Zone>) {
    let Some(element) = dom::by_id("snap") else { return };
    let Some(zone) = zone else { return element.set_hidden(true) };
    let rect = zone.rect(dom::screen());
    dom::style(&element, "left", &format!("{}px", rect.x));
    dom::style(&element, "top", &format!("{}px", rect.y));
    dom::style(&element, "width", &format!("{}px", rect.width));
    dom::style(&element, "height", &format!("{}px", rect.height));
    element.set_hidden(false);
}

/// Puts a window there.
pub(crate) fn to_zone(app_state: AppState, id: WindowId, zone: Zone) {
    let Some(state) = app_state.window(id) else { return };
    app_state.raise(id);
    if state.mode == WindowMode::Normal {
        drag::remember(id, state.rect);
    }
    app_state.change(id, |w| match zone {
        Zone::Full => w.mode = WindowMode::Maximized,
        Zone::Left | Zone::Right | Zone::TopLeft | Zone::TopRight | Zone::BottomLeft | Zone::BottomRight => {
            w.mode = WindowMode::Normal;
            w.rect = zone.rect(dom::screen());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_corners_and_the_top_call_for_their_zones() {
        let screen = (1440, 900);
        let table = [
            ((2, 400), Some(Zone::Left)),
            ((1438, 400), Some(Zone::Right)),
            ((2, 20), Some(Zone::TopLeft)),
            ((1438, 830), Some(Zone::BottomRight)),
            ((700, 0), Some(Zone::Full)),
            ((700, 400), None),
        ];
        for (at, zone) in table {
            assert_eq!(zone_at(at, screen), zone, "{at:?}");
        }
    }

    #[test]
    fn two_halves_fill_the_screen_and_do_not_overlap() {
        let (left, right) = (Zone::Left.rect((1440, 900)), Zone::Right.rect((1440, 900)));
        assert_eq!(left.x + left.width as i32 + GAP, right.x);
        assert!(right.x + right.width as i32 <= 1440);
        assert!(left.y + left.height as i32 <= 900 - BAR);
    }
}
