"""Policy-gradient regressors: DSR, PQT, VPG and GPMeld of the paper, horizontal and vertical (extra ``[neural]``)."""
