import warnings

import numpy as np
import torch
from threadpoolctl import threadpool_info

from infoknife.leakage.workers import workers


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info()}


def test_fits_have_one_thread_each_and_all_is_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        outside, filters = threads(), list(warnings.filters)
        with workers() as pool:
            assert pool._max_workers == 2
            assert pool.submit(torch.get_num_threads).result() == 1
            assert pool.submit(threads).result() == {1}
            pool.submit(warnings.warn, "few iterations").result()
        assert threads() == outside
        assert torch.get_num_threads() == 2
        assert list(warnings.filters) == filters
    finally:
        torch.set_num_threads(before)


def test_jobs_come_back_in_order() -> None:
    with workers() as pool:
        assert list(pool.map(np.square, range(5))) == [0, 1, 4, 9, 16]
