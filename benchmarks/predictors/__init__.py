"""What predicting and training cost; needs the extra ``predictors``."""
