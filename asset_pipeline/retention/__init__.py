"""When must it go? Clocks, holds, and what removes material whose time is over."""
