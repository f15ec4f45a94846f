"""What the judge's tests share."""

from judge_fixtures import own_cache, small

__all__ = ["own_cache", "small"]
