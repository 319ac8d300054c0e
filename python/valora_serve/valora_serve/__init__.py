"""Many valora servers behind one OpenAI endpoint, as a Ray Serve application.

serve run valora_serve:app model=/models/base adapters=/models/adapters
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import app
    from .settings import Settings

__all__ = ["Settings", "app"]


def __getattr__(name: str) -> Any:
    """Ray is imported only when the application is built; routing and the store work without it."""
    if name == "app":
        from .application import app

        return app
    if name == "Settings":
        from .settings import Settings

        return Settings
    raise AttributeError(name)
