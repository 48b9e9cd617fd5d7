"""The page: a thin view. A handler reads fields, makes one call of the services, and draws the result with a pure view."""
