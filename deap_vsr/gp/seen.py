"""The forms that a round of GP has met, of which a long round meets hundreds of thousands."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable

import numpy as np

from deap_vsr.tree.operators import Indices


class Seen:
    """A set of forms (:func:`deap_vsr.tree.simplify.skeleton_key`) in eight bytes each; a set of Python takes some 70.

    New forms wait in a set of Python's until there are `WAITING` of them, and are then merged into a sorted array. When
    there are `HALF` forms in all, they are the old half and a new one begins; the old half before is forgotten, so that
    at most twice `HALF` are held, and the last `HALF` are always known.
    """

    WAITING = 4096
    HALF = 128 * WAITING

    def __init__(self, forms: Iterable[int] = ()) -> None:
        self._old: Indices = np.empty(0, np.int64)
        self._young: Indices = np.empty(0, np.int64)
        self._waiting: set[int] = set()
        for form in forms:
            self.add(form)

    def __contains__(self, form: int) -> bool:
        return form in self._waiting or _holds(self._young, form) or _holds(self._old, form)

    def __len__(self) -> int:
        return len(self._old) + len(self._young) + len(self._waiting)

    def add(self, form: int) -> None:
        """Remember a form."""
        if form in self:
            return
        self._waiting.add(form)
        if len(self._waiting) >= self.WAITING or len(self._young) + len(self._waiting) >= self.HALF:
            self._young = self._all_young()
            self._waiting.clear()
            if len(self._young) >= self.HALF:
                self._old, self._young = self._young, np.empty(0, np.int64)

    def _all_young(self) -> Indices:
        """Return the new half, in order."""
        waiting = np.array(sorted(self._waiting), np.int64)
        return np.insert(self._young, self._young.searchsorted(waiting), waiting)

    def state(self) -> str:
        """Return it in text, for a checkpoint: the old half, if there is one, and the new one."""
        return b64encode(np.concatenate([self._old, self._all_young()]).tobytes()).decode()

    @classmethod
    def restored(cls, state: str) -> Seen:
        """Return what :meth:`state` wrote."""
        forms: Indices = np.frombuffer(b64decode(state), np.int64)
        found, n_old = cls(), cls.HALF if len(forms) >= cls.HALF else 0
        found._old, found._young = np.sort(forms[:n_old]), np.sort(forms[n_old:])
        return found


def _holds(forms: Indices, form: int) -> bool:
    if not len(forms):
        return False
    place = forms.searchsorted(form)
    return bool(place < len(forms) and forms[place] == form)
