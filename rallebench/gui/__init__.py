"""The page: a thin view. A handler reads widgets, makes one core call, and shows the result with a pure view."""
