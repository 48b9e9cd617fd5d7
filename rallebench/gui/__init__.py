"""The page. It is a thin view: a handler reads fields, makes one call of the services, and draws the result with a
pure view.
"""
