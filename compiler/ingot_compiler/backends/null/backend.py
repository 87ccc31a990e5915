"""The back end of ``null``: kernels and support are the host's, its library has no `main`.

In: nothing. Out: ``BACKEND``. Not done here: the hooks.
"""

from ingot_compiler.backends.host.device_backend import device_backend

BACKEND = device_backend("null", scopes=None)
